# What `cmake --install` lays down: program, library, headers, models and experiments, and the CMake package `gpunn`.
# Plugins install themselves (GpunnAddBackend.cmake).
include(CMakePackageConfigHelpers)

# Everything that `gpunn run` needs, and no test.
get_property(gpunn_backends GLOBAL PROPERTY GPUNN_BACKENDS)
add_custom_target(program)
foreach(target gpunn_cli gpunn_runtime gpunn_grpc ${gpunn_backends})
  if(TARGET ${target})
    add_dependencies(program ${target})
  endif()
endforeach()

install(TARGETS gpunn_api EXPORT gpunnTargets)
install(TARGETS gpunn_runtime EXPORT gpunnTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/include/gpunn ${PROJECT_SOURCE_DIR}/runtime/include/gpunn
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

if(TARGET gpunn_cli)
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(gpunn_cli PROPERTIES INSTALL_RPATH $ORIGIN/${bin_to_lib})
  install(TARGETS gpunn_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models ${PROJECT_SOURCE_DIR}/experiments
        DESTINATION ${CMAKE_INSTALL_DATADIR}/gpunn)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/gpunn)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gpunnConfig.cmake.in ${PROJECT_BINARY_DIR}/gpunnConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpunnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpunnConfig.cmake ${PROJECT_BINARY_DIR}/gpunnConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/GpunnAddBackend.cmake ${CMAKE_CURRENT_LIST_DIR}/plugin_symbols.map
        DESTINATION ${package_folder})
install(EXPORT gpunnTargets NAMESPACE gpunn:: DESTINATION ${package_folder})
