// Ranks as threads of one process: each has its own sockets.
#pragma once

#include <gpunn/ranks.hpp>

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "distributed/socket.hpp"
#include "distributed/team.hpp"

namespace gpunn::testing {

// Below the ports that systems give out by themselves.
inline std::string free_rendezvous() {
  static int port = 20000 + ::getpid() % 12000;
  while (true) {
    port = port < 31999 ? port + 1 : 20000;
    try {
      distributed::Listener::open({"127.0.0.1", port});
      return "127.0.0.1:" + std::to_string(port);
    } catch (const std::exception&) {  // in use
    }
  }
}

inline RankPlace place_of(int rank, int world, const std::string& rendezvous) {
  return {.rank = rank, .world = world, .rendezvous = rendezvous, .job = "job", .launcher = "test"};
}

// What `work` threw on each rank; empty: nothing.
inline std::vector<std::string> on_ranks(int world, const std::function<void(distributed::Team&)>& work) {
  const std::string rendezvous = free_rendezvous();
  std::vector<std::string> errors(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto team = distributed::Team::join(place_of(rank, world, rendezvous));
        try {
          work(*team);
          team->leave();
        } catch (const std::exception& error) {
          team->fail(error.what());
          throw;
        }
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace gpunn::testing
