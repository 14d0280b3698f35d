"""Rows in, one sealed Parquet file out, and back."""
