"""The shape of a task's own fields."""

from rollbook import (
    TaskDataValidator as TaskDataValidator,
    load_task_data_schema as load_task_data_schema,
    normalize_task_fields as normalize_task_fields,
)
