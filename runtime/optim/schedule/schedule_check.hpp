#pragma once

#include <gpunn/experiment.hpp>

#include <string>

#include "config/diagnostics.hpp"
#include "config/given_keys.hpp"

namespace gpunn::training {

// Checks the user's keys for one type of schedule. Keys have the names of the section.
class ScheduleCheck {
 public:
  ScheduleCheck(const Experiment& experiment, const config::GivenKeys& given, config::Diagnostics& diagnostics)
      : experiment_(experiment), given_(given), diagnostics_(diagnostics) {}

  template <class Kind>
  const Kind& as() const {
    return std::get<Kind>(experiment_.schedule.kind);
  }
  // False where the key's value was refused.
  bool sound(const std::string& key) const { return given_.sound("schedule." + key); }
  // At the key, or at the schedule's type if the experiment does not give the key.
  void add(const std::string& key, const std::string& message);
  // Lengths in ticks must be whole numbers.
  void require_whole(const std::string& key, double length);
  // A length that repeats is long enough to be told from none.
  void require_period(const std::string& key, double length);
  // min_learning_rate is at most the rate that the schedule starts from.
  void require_at_most_base(double min_learning_rate);
  std::string unit() const;  // of lengths: "steps", "epochs"

 private:
  const Experiment& experiment_;
  const config::GivenKeys& given_;
  config::Diagnostics& diagnostics_;
};

}  // namespace gpunn::training
