"""Reward models: one adapter per format, all served as classifiers read at their last token."""
