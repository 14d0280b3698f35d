"""An outcome in, text, JSON, HTML, metrics, a script or progress out."""
