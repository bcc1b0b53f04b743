#include "program/sums.hpp"

#include <algorithm>
#include <utility>

#include "ops/values.hpp"
#include "program/programs.hpp"

namespace gpunn::training {

namespace {

const storage::StoredTensor* find_stored(const storage::Checkpoint& checkpoint, const tasks::Accumulator& one) {
  const auto found = std::ranges::find(checkpoint.state, one.name, &storage::StoredTensor::name);
  return found == checkpoint.state.end() || !(found->type == one.type) ? nullptr : &*found;
}

std::vector<double> doubles_of(std::span<const double> values) { return {values.begin(), values.end()}; }

}  // namespace

std::string SumVariables::variable(const tasks::Accumulator& one) const {
  return accumulator_variable(phase_, one.name);
}

void SumVariables::reset() {
  for (const tasks::Accumulator& one : accumulators_) {
    variables_.write(variable(one), std::vector<std::byte>(one.type.bytes()));
  }
}

tasks::Accumulated SumVariables::read(distributed::Team* team) const {
  std::vector<double> all;
  for (const tasks::Accumulator& one : accumulators_) {
    const std::vector<double> values = ops::decode(one.type, variables_.read(variable(one))).values;
    all.insert(all.end(), values.begin(), values.end());
  }
  if (team != nullptr) all = team->sums(std::move(all));
  tasks::Accumulated sums;
  auto rest = std::span(std::as_const(all));
  for (const tasks::Accumulator& one : accumulators_) {
    const auto count = static_cast<std::size_t>(one.type.elements());
    sums.set(one.name, doubles_of(rest.first(count)));
    rest = rest.subspan(count);
  }
  return sums;
}

void SumVariables::save(storage::Checkpoint& checkpoint, distributed::Team* team) const {
  const tasks::Accumulated sums = read(team);
  for (const tasks::Accumulator& one : accumulators_) {
    checkpoint.state.push_back({one.name, one.type, ops::encode({one.type, doubles_of(sums.of(one.name))})});
  }
}

std::string SumVariables::missing(const storage::Checkpoint& checkpoint) const {
  std::string lines;
  for (const tasks::Accumulator& one : accumulators_) {
    if (find_stored(checkpoint, one) != nullptr) continue;
    lines += "\n  the state '" + one.name + "' " + to_string(one.type) + " is missing";
  }
  return lines;
}

void SumVariables::restore(const storage::Checkpoint& checkpoint) {
  for (const tasks::Accumulator& one : accumulators_) {
    variables_.write(variable(one), find_stored(checkpoint, one)->values);
  }
}

}  // namespace gpunn::training
