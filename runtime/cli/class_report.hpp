#pragma once

#include <gpunn/evaluation.hpp>

#include <string>

namespace gpunn::cli {

// Precision, recall and F1 of each class and their means; of more than 100 classes the 20 with the smallest F1.
std::string class_table(const ClassEvalReport& report, bool colour);

// A row for each class of the test data, a column for each predicted one, headed by its number.
std::string confusion_table(const ClassEvalReport& report, bool colour);

}  // namespace gpunn::cli
