import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { SANDBOX_OBJECTS } from '../control/workerd-config.ts'
import type { Sandboxes } from '../open-sandboxes.ts'
import type { Containers } from '../settings/containers.ts'
import { Docker } from './docker.ts'
import { OwnContainers } from './own-containers.ts'

/** Checks that sandboxes can be made in containers; control makes them, and what is left of them at the end goes here. */
export async function openContainers(containers: Containers, objects: string): Promise<Sandboxes> {
  const docker = new Docker(containers.socket)
  const problems = await findContainerProblems(containers, docker)
  if (problems.length > 0)
    throw new SandwireError(
      'provider_unavailable',
      `Cannot make sandboxes in containers: ${problems.join('; ')}`,
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

/** What holds less than bubblewrap on one machine; docs/operations.md says what to do about it. */
export const WEAKNESSES: readonly string[] = [
  'workerd gives containers no limits of memory, processes and disk: give the engine some',
  'workerd publishes a port of each container on every address of this machine: start dockerd with --ip 127.0.0.1',
]

/** Everything that keeps sandboxes from starting in containers here, one line each with the way out. */
export async function findContainerProblems(
  { socket, image, egressImage }: Containers,
  engine: Engine,
): Promise<readonly string[]> {
  if (!(await engine.isAnswering()))
    return [
      `No Docker engine answers at "${socket}": start it, let this user open its socket, or name another with DOCKER_HOST`,
    ]
  const [hasImage, hasEgressImage, gateway] = await Promise.all([
    engine.hasImage(image),
    engine.hasImage(egressImage),
    engine.gateway(),
  ])
  return [
    ...(hasImage ? [] : [`There is no image "${image}": make it with npm run image`]),
    ...(hasEgressImage ? [] : [`There is no image "${egressImage}": docker pull ${egressImage}`]),
    ...(gateway === undefined
      ? ['The network of the Docker engine names no gateway: start dockerd with --bip 172.17.0.1/16']
      : []),
  ]
}
