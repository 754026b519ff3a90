"""Two real hosts on one Linux machine, for the tests that need them."""
