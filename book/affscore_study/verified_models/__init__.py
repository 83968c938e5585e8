"""Many networks of three libraries: are their activation calls all seen, and are their outputs left alone?"""
