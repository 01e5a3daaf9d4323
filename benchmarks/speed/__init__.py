"""What setconv costs: time and memory, each figure beside what it is measured against."""
