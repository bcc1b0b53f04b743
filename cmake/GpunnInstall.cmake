# What `cmake --install` lays down: program, library, headers, models, experiments, pages, manual, completions, and the
# CMake package `gpunn`. Plugins install themselves (GpunnAddBackend.cmake). Its components are `gpunn` (what runs), `dev`
# (what is compiled against) and `cuda`; GpunnPackages.cmake makes Debian packages of them.
include(CMakePackageConfigHelpers)

# Everything that `gpunn run` needs, and no test.
get_property(gpunn_backends GLOBAL PROPERTY GPUNN_BACKENDS)
add_custom_target(program)
foreach(target gpunn_cli gpunn_runtime gpunn_grpc ${gpunn_backends})
  if(TARGET ${target})
    add_dependencies(program ${target})
  endif()
endforeach()

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
install(TARGETS gpunn_api EXPORT gpunnTargets)
install(TARGETS gpunn_runtime EXPORT gpunnTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT gpunn
                                                          NAMELINK_COMPONENT dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/include/gpunn ${PROJECT_SOURCE_DIR}/runtime/include/gpunn
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/gpunn
        USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/gpunn)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gpunnConfig.cmake.in ${PROJECT_BINARY_DIR}/gpunnConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpunnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpunnConfig.cmake ${PROJECT_BINARY_DIR}/gpunnConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/GpunnAddBackend.cmake ${CMAKE_CURRENT_LIST_DIR}/plugin_symbols.map
        DESTINATION ${package_folder})
install(EXPORT gpunnTargets NAMESPACE gpunn:: DESTINATION ${package_folder})

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME gpunn)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models ${PROJECT_SOURCE_DIR}/experiments
        DESTINATION ${CMAKE_INSTALL_DATADIR}/gpunn)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN "*.py" EXCLUDE
                                                                                PATTERN __pycache__ EXCLUDE)

if(TARGET gpunn_cli)
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(gpunn_cli PROPERTIES INSTALL_RPATH $ORIGIN/${bin_to_lib})
  install(TARGETS gpunn_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The manual and the completions, as the program itself tells them. Each shell looks into a folder of its own.
if(TARGET gpunn_cli AND NOT CMAKE_CROSSCOMPILING)
  set(GPUNN_ZSH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where zsh looks for completions")
  mark_as_advanced(GPUNN_ZSH_COMPLETIONS)
  set(told ${PROJECT_BINARY_DIR}/told)
  add_custom_command(
    OUTPUT ${told}/done
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${told}
    COMMAND gpunn_cli manual ${told}/man1
    COMMAND gpunn_cli completion bash > ${told}/gpunn
    COMMAND gpunn_cli completion zsh > ${told}/_gpunn
    COMMAND gpunn_cli completion fish > ${told}/gpunn.fish
    COMMAND ${CMAKE_COMMAND} -E touch ${told}/done
    DEPENDS gpunn_cli
    VERBATIM)
  add_custom_target(manual ALL DEPENDS ${told}/done)
  add_dependencies(program manual)
  install(DIRECTORY ${told}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${told}/gpunn DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${told}/_gpunn DESTINATION ${GPUNN_ZSH_COMPLETIONS})
  install(FILES ${told}/gpunn.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
