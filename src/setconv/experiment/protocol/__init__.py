"""What a study is: data sets, methods, splits and metrics, and how one cell is computed."""
