#include "execution/steps/variables.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <utility>

#include "common/text.hpp"

namespace gpunn::execution {

namespace {

template <class Entries>
auto& entry(Entries& entries, const std::string& name) {
  const auto found = entries.find(name);
  if (found != entries.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, ignored] : entries) names.push_back(known);
  throw Error("there is no variable '" + name + "'" +
              (names.empty() ? "; there are none" : did_you_mean_or_list(name, names)));
}

}  // namespace

Variables::Variables(Backend& backend) : backend_(backend) {}

void* Variables::create(const std::string& name, const TensorType& type, graph::Storage storage) {
  return add(name, type, storage, false);
}

void* Variables::create_temporary(const std::string& name, const TensorType& type, graph::Storage storage) {
  return add(name, type, storage, true);
}

void* Variables::add(const std::string& name, const TensorType& type, graph::Storage storage, bool pooled) {
  if (const auto found = entries_.find(name); found != entries_.end()) {
    if (!(found->second.type == type)) {
      throw Error("variable '" + name + "' is " + to_string(found->second.type) + ", and was asked for as " +
                  to_string(type));
    }
    return found->second.data;
  }
  Buffer buffer = pooled ? backend_.allocate_temporary(type.bytes()) : backend_.allocate(type.bytes());
  backend_.fill(buffer.data(), 0, type.bytes());
  void* const data = buffer.data();
  entries_.emplace(name, Entry{type, storage, std::move(buffer), data});
  return data;
}

void Variables::share(const std::string& name, const Variables& other) {
  const Entry& theirs = entry(other.entries_, name);
  entries_.emplace(name, Entry{theirs.type, theirs.storage, {}, theirs.data});
}

void Variables::drop(const std::string& name) {
  entry(entries_, name);  // that it is there
  entries_.erase(name);
}

bool Variables::contains(const std::string& name) const { return entries_.count(name) != 0; }

void* Variables::data(const std::string& name) const { return entry(entries_, name).data; }

const TensorType& Variables::type(const std::string& name) const { return entry(entries_, name).type; }

uint64_t Variables::bytes(graph::Storage storage) const {
  uint64_t sum = 0;
  for (const auto& [name, variable] : entries_) {
    if (variable.storage == storage) sum += variable.buffer.bytes();
  }
  return sum;
}

void Variables::write(const std::string& name, std::span<const std::byte> values) {
  const Entry& variable = entry(entries_, name);
  if (values.size() != variable.type.bytes()) {
    throw Error("variable '" + name + "' is " + to_string(variable.type) + ", " +
                std::to_string(variable.type.bytes()) + " bytes; " + std::to_string(values.size()) +
                " were given to write");
  }
  backend_.upload(variable.data, values.data(), values.size());
}

std::vector<std::byte> Variables::read(const std::string& name) const {
  const Entry& variable = entry(entries_, name);
  std::vector<std::byte> values(variable.type.bytes());
  backend_.download(values.data(), variable.data, values.size());
  return values;
}

}  // namespace gpunn::execution
