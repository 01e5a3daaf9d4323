"""The comparison study: SetConvClassifier against its peers on text and tabular sets."""
