"""Planning: backward induction on a store's estimates."""
