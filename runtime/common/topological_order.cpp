#include "common/topological_order.hpp"

#include <set>

namespace gpunn {

std::vector<std::size_t> topological_order(const std::vector<std::vector<std::size_t>>& inputs) {
  std::vector<std::size_t> waiting(inputs.size(), 0);
  std::vector<std::vector<std::size_t>> users(inputs.size());
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    waiting[i] = inputs[i].size();
    for (const std::size_t input : inputs[i]) users[input].push_back(i);
    if (inputs[i].empty()) ready.insert(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const std::size_t user : users[next]) {
      if (--waiting[user] == 0) ready.insert(user);
    }
  }
  return order;
}

}  // namespace gpunn
