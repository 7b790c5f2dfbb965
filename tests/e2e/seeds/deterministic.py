import cProfile

def my_function():
    # Your code here
    pass

cProfile.run('my_function()')
