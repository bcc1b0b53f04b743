#pragma once

#include <gpunn/model_spec.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/values.hpp"

namespace gpunn::config {

enum class LayerValue {
  integer,
  number,
  boolean,
  choice,
  sizes,    // an integer for all dimensions, or one for each: [rows, columns]
  padding,  // margins, or `same`
  margins,  // an integer for all sides, one for each dimension, or one for each side: [top, bottom, left, right]
  list,     // an integer or as many as are wanted
  op,       // the name of an op of the catalogue
};

constexpr std::size_t kMostSpace = 3;  // dimensions behind the channels

struct LayerKey {
  std::string name;
  LayerValue kind = LayerValue::integer;
  std::string fallback;  // the default, as text or the name of another key; empty: has to be given
  Range range;
  std::vector<std::string> choices;
  std::string help;
  std::size_t dimensions = 2;  // of sizes and margins; 0: those of the input, at most kMostSpace
};

class LayerArguments;

// A layer type. A new one is a row in config/layers/ and a function in nn/layers/.
struct LayerType {
  std::string name;
  std::string help;
  int inputs = 1;
  std::vector<LayerKey> keys;  // beside `name` and `from`, which every layer has
  // Checks that the rows cannot express and that need no shape: why the arguments contradict each other, or "".
  std::string (*check)(const LayerArguments& arguments) = nullptr;
  int most_inputs = 0;         // where they need not be exactly `inputs`; 0: they do
  bool op_attributes = false;  // it also takes the attributes of its `op` as keys, which nn/ checks

  const LayerKey* find(std::string_view key) const;
};

// How values of sizes and margins are written besides as a single integer: "[rows, columns]".
std::vector<std::string> forms(const LayerKey& key);

const std::vector<LayerType>& layer_table();
const LayerType* find_layer_type(std::string_view name);
std::vector<std::string> layer_type_names();
constexpr const char* kLayersCommand = "'gpunn help layers'";  // lists them

// Checks the type, the names of its parameters and their values, each at its place.
void check_layer(const LayerSpec& layer, Diagnostics& diagnostics);

// The parameters of a checked layer, defaults filled in.
class LayerArguments {
 public:
  LayerArguments(const LayerType& type, const LayerSpec& layer) : type_(type), layer_(layer) {}

  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::string choice(std::string_view key) const;
  bool is_same(std::string_view key) const;  // padding: same
  // A number for each of so many dimensions, or for each of their sides: top, bottom, left, right. Throw Error if the
  // layer has other numbers.
  std::vector<int64_t> sizes(std::string_view key, std::size_t dimensions) const;
  std::vector<int64_t> margins(std::string_view key, std::size_t dimensions) const;
  std::vector<int64_t> list(std::string_view key) const;

 private:
  std::vector<std::string> texts(std::string_view key) const;
  const LayerType& type_;
  const LayerSpec& layer_;
};

}  // namespace gpunn::config
