// The tasks, a file each: a new one has a line here and one in task.cpp.
#pragma once

#include "tasks/task.hpp"

namespace gpunn::tasks {

const Task& classification();
const Task& regression();
const Task& multi_label();

}  // namespace gpunn::tasks
