#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/blocks.hpp"
#include "config/entry_values.hpp"

namespace gpunn::config {

// The arguments of one use of a block: {name: stage2, repeat: 2, filters: 128, first: {stride: 2}}.
class BlockArguments {
 public:
  // Reads and checks all arguments except `from`. The values are those around the use. Mistakes go to `report`.
  BlockArguments(const BlockUse& use, const EntryValues& values, const EntryValues::Report& report);

  bool sound() const { return sound_; }
  const std::string& name() const { return name_; }  // empty: none given
  bool used() const { return used_; }                // `when`
  std::optional<int64_t> count() const { return count_; }
  // The parameters of the instance with this number: the block's own before the model's. Empty if a required parameter
  // is missing, which is reported.
  std::optional<ParameterValues> values_of(int64_t instance, const ParameterValues& model) const;

 private:
  bool take(const YamlEntry& entry, const EntryValues& values);
  void take_parameter(const YamlEntry& entry, const EntryValues& values, ParameterValues& given,
                      const std::vector<std::string>& others);

  const BlockUse& use_;
  const EntryValues::Report& report_;
  std::string title_;
  std::string name_;
  std::optional<int64_t> count_;
  bool used_ = true, sound_ = true;
  ParameterValues given_, first_;
};

}  // namespace gpunn::config
