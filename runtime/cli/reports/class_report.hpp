#pragma once

#include <gpunn/evaluation.hpp>

#include <string>

namespace gpunn::cli {

// Precision, recall and F1 of each class and their means, or the scores of each label or target column if there are
// several. Of more than 100 rows, it shows the 20 with the smallest F1 or first score.
std::string class_table(const ClassEvalReport& report, bool colour);

// The confusion matrix: a row for each class of the test data, a column for each predicted class, headed by its number.
std::string confusion_table(const ClassEvalReport& report, bool colour);

}  // namespace gpunn::cli
