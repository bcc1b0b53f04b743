#pragma once

#include <gpunn/check.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/abi/raw_device.hpp"
#include "conformance/stream/delay.hpp"
#include "execution/backend.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::conformance {

// The backend under test, opened.
class Workbench {
 public:
  // Throws Error where the backend can't be used.
  explicit Workbench(const CheckOptions& options);

  const CheckOptions& options() const { return options_; }
  execution::Backend& backend() { return *backend_; }
  const PluginPointer& bottom() const { return plugins_.back(); }  // of the chain: it owns memory and stream
  const plugins::Plugin& plugin(int level) const { return *plugins_.at(static_cast<std::size_t>(level)); }
  // What runs from now on takes the kernel of that name; empty: the plugins' own choice.
  void want(const std::string& kernel);
  const std::string& wanted_kernel() const { return wanted_kernel_; }
  const RawChain& chain();  // the same plugins through their bare tables, opened at first use
  const Delay& delay();     // for its streams, likewise

 private:
  const CheckOptions& options_;
  plugins::PluginRegistry registry_;
  std::vector<PluginPointer> plugins_;
  std::unique_ptr<execution::Backend> backend_;
  std::string wanted_kernel_;
  std::optional<RawChain> chain_;
  std::unique_ptr<Delay> delay_;
};

// Why the backend has no device here; empty where it has one, or where something else keeps it from serving.
std::string lack_of_device(const CheckOptions& options);

}  // namespace gpunn::conformance
