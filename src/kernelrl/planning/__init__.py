"""Planning: backward induction on what a store estimates."""
