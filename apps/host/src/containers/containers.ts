import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { SANDBOX_OBJECTS } from '../control/workerd-config.ts'
import type { Sandboxes } from '../open-sandboxes.ts'
import type { Containers } from '../settings/containers.ts'
import { Docker } from './docker.ts'
import { OwnContainers } from './own-containers.ts'

/** Checks that sandboxes can run in containers. Control creates them; leftovers are removed here. */
export async function openContainers(
  containers: Containers,
  objects: string,
): Promise<Omit<Sandboxes, 'disk'>> {
  const docker = new Docker(containers.socket)
  const problems = await findContainerProblems(containers, docker)
  if (problems.length > 0)
    throw new SandwireError(
      'provider_unavailable',
      `Cannot run sandboxes in containers: ${problems.join('; ')}`,
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

type Engine = Pick<Docker, 'isAnswering' | 'hasImage' | 'gateway'>

/** Where containers are weaker than bubblewrap; docs/operations.md describes the remedies. */
export const WEAKNESSES: readonly string[] = [
  'workerd sets no memory, process and disk limits for containers: set defaults in the engine',
  'workerd publishes a port of each container on every address of this machine: start dockerd with --ip 127.0.0.1',
]

/** Everything that prevents sandboxes in containers on this machine, one line each with what to do. */
export async function findContainerProblems(
  { socket, image, egressImage }: Containers,
  engine: Engine,
): Promise<readonly string[]> {
  if (!(await engine.isAnswering()))
    return [
      `No Docker engine answers at "${socket}": start it, give this user access to its socket, or set DOCKER_HOST`,
    ]
  const [hasImage, hasEgressImage, gateway] = await Promise.all([
    engine.hasImage(image),
    engine.hasImage(egressImage),
    engine.gateway(),
  ])
  return [
    ...(hasImage ? [] : [`Image "${image}" not found: build it with npm run image`]),
    ...(hasEgressImage ? [] : [`Image "${egressImage}" not found: docker pull ${egressImage}`]),
    ...(gateway === undefined
      ? ['The default network of the Docker engine has no gateway: start dockerd with --bip 172.17.0.1/16']
      : []),
  ]
}
