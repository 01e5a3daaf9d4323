"""What is measured: speed and quality."""
