import type { Containers } from '../settings/containers.ts'
import type { Docker } from './docker.ts'

type Engine = Pick<Docker, 'isAnswering' | 'hasImage' | 'gateway'>

/** What holds less than bubblewrap on one machine; docs/operations.md says what to do about it. */
export const WEAKNESSES: readonly string[] = [
  'workerd gives containers no limits of memory, processes and disk: give the engine some',
  'workerd publishes a port of each container on every address of this machine: start dockerd with --ip 127.0.0.1',
]

/** Everything that keeps sandboxes from starting in containers here, one line each with the way out. */
export async function findObstacles(
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
