"""What a scikit-learn user calls."""
