#pragma once

#include <gpunn/evaluation.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/history.hpp"
#include "report/pictures.hpp"

namespace gpunn::reports {

// A mistake with what can be shown of its sample.
struct ShownMistake {
  Mistake mistake;
  std::optional<chart::Raster> picture;
  std::string values;  // of a sample that is no picture: "0.12, -1.3"
  // A PNG file that shows which parts of the picture speak for the predicted class; empty: the model has no maps.
  std::string map = {};
  std::string layer = {};  // by which
};

// The same of a row of data without classes.
struct ShownRow {
  RowReport row;
  std::optional<chart::Raster> picture;
  std::string values;
};

// All that a report shows.
struct Contents {
  std::string title;   // the experiment's name
  std::string notice;  // of a data set in place of another, ...; empty: nothing
  std::vector<std::pair<std::string, std::string>> facts;
  std::string experiment;  // resolved YAML
  int64_t parameters = 0;
  History history;
  EvaluationPart held_out = EvaluationPart::test;  // what the epochs were judged by
  ClassEvalReport evaluation;
  std::vector<ShownMistake> mistakes;
  std::vector<ShownRow> worst_rows;
  std::string convolution;  // the parameter that `filters` shows: "conv1.weight f32[6, 1, 5, 5]"
  std::optional<FilterGrid> filters;
};

}  // namespace gpunn::reports
