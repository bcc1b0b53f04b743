#pragma once

#include <gpunn/ranks.hpp>
#include <gpunn/tensor_type.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distributed/links.hpp"
#include "distributed/watch.hpp"

namespace gpunn::distributed {

// A setting that must be equal on all ranks: "the experiment", and its digest.
struct Fact {
  std::string name, digest;
};

// A digest of a text, for a Fact: 16 hexadecimal digits.
std::string digest_of(std::string_view text);

// This rank's share of a number of things: consecutive ones, in shares as equal as possible.
struct Share {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};
inline Share share_of(int64_t all, int rank, int world) { return {all * rank / world, all * (rank + 1) / world}; }

// The ranks that train together, from the view of one. All ranks make the same calls in the same order; a call returns
// when every rank has made it. If a rank is lost, it throws Error with that rank's name and last message. One thread at
// a time may call.
class Team {
 public:
  // Waits for all ranks: 120 s, or GPUNN_RENDEZVOUS_SECONDS. Throws as meet().
  static std::shared_ptr<Team> join(const RankPlace& place);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const { return place_.rank; }
  int world() const { return place_.world; }
  bool speaks() const { return place_.rank == 0; }  // to the user
  // local_rank and local_world are those of the machines that the ranks met on.
  const RankPlace& place() const { return place_; }
  std::string text_of(int rank) const { return rank_text(rank, ranks_); }

  // `all` is `mine` of every rank, in order.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  // The same of any sizes.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine);
  std::vector<std::string> gather(const std::string& mine);
  // Sends the data of `root` to all.
  void broadcast(std::span<std::byte> bytes, int root);
  // Sums over the ranks, in the order of the ranks: the same bits on each, and each time.
  void all_reduce(DType dtype, std::span<std::byte> values);
  // The same of `parts` parts, of which rank r has those of share_of(), one behind another in x: y is their sum, added
  // from the first to the last, the same bits for any number of ranks. x may begin at y.
  void all_reduce_parts(DType dtype, std::span<const std::byte> x, std::span<std::byte> y, int64_t parts);
  // The same for a few numbers.
  std::vector<double> sums(std::vector<double> values);
  bool any(bool mine);

  // Throws Error(usage) on every rank, with both digests, if one differs from rank 0's.
  void require_equal(const std::vector<Fact>& facts);

  // Called on another thread when a rank is lost, so that what waits for it can be ended.
  void when_lost(std::function<void()> action) { watch_.when_lost(std::move(action)); }
  // Throws if a rank is lost, after a moment in which rank 0 may report it.
  void throw_if_lost() const { links_.throw_if_lost(); }
  // Tells the others that this rank ends because of an error.
  void fail(const std::string& words) noexcept { watch_.fail(words); }
  // The training thread is at a place where all ranks are at the same count of such places.
  void arrive() noexcept { watch_.arrive(); }
  // It goes on at another place.
  void show_life() noexcept { watch_.show_life(); }
  // A rank that stays behind the others for too long counts as lost (docs/scaling.md): while they take steps, and
  // between steps too once all that is prepared at its first use is prepared.
  void set_stepping(bool stepping) noexcept { watch_.set_stepping(stepping); }
  void set_prepared() noexcept { watch_.set_prepared(); }
  // Waits for all ranks: they are done.
  void leave();

 private:
  Team(const RankPlace& place, Meeting meeting);
  std::span<std::byte> scratch(std::size_t bytes);

  RankPlace place_;
  std::vector<RankInfo> ranks_;
  Watch watch_;
  Links links_;
  std::vector<std::byte> scratch_;
};

}  // namespace gpunn::distributed
