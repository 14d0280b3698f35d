"""Tests that leave the clusters as they were but for tables and files of their own: all take turns on one pair."""
