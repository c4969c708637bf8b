"""``%load_ext tftracer``: the cell magic ``%%trace``. IPython is imported when a cell is traced."""
