"""What has been lost at most: the largest regret over all models that the data have not refuted."""
