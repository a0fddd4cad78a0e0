"""What is kept of the transitions seen: every sample, counts at representative states, counts in cells."""
