"""How functions are compiled and dispatched; arrays, random numbers and vectors in compiled code."""
