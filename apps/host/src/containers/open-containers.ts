import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { SANDBOX_OBJECTS } from '../control/workerd-config.ts'
import type { Sandboxes } from '../open-sandboxes.ts'
import type { Containers } from '../settings/containers.ts'
import { Docker } from './docker.ts'
import { findObstacles, WEAKNESSES } from './obstacles.ts'
import { OwnContainers } from './own-containers.ts'

/** Checks that sandboxes can be made in containers; control makes them, and what is left of them at the end goes here. */
export async function openContainers(containers: Containers, objects: string): Promise<Sandboxes> {
  const docker = new Docker(containers.socket)
  const obstacles = await findObstacles(containers, docker)
  if (obstacles.length > 0)
    throw new SandwireError(
      'provider_unavailable',
      `Cannot make sandboxes in containers: ${obstacles.join('; ')}`,
    )
  const own = new OwnContainers(docker, path.join(objects, SANDBOX_OBJECTS))
  return {
    isolation: 'container',
    engine: docker,
    slots: [],
    weaknesses: WEAKNESSES,
    // The image has its own programs.
    missingPrograms: [],
    adopt: () => own.adopt(),
    close: async ({ stop }) => {
      if (stop) await own.end()
    },
  }
}
