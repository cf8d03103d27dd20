import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { SANDBOX_OBJECTS } from '../control/workerd-config.ts'
import { egressSocketIn } from '../data/socket-path.ts'
import { openEgressProxy } from '../egress/egress-proxy.ts'
import type { DataFolder } from '../data/data-folder.ts'
import { describeCause, type Log } from '../log.ts'
import type { Sandboxes } from '../open-sandboxes.ts'
import type { Containers } from '../settings/containers.ts'
import { Docker } from './docker.ts'
import { EgressFilter } from './egress-filter.ts'
import { OwnContainers } from './own-containers.ts'

export interface OpenContainersOptions {
  readonly folder: Pick<DataFolder, 'root' | 'objects'>
  /** Private folder for sockets. */
  readonly socketFolder: string
  /** workerd's process; undefined while it does not run. */
  readonly workerdPid: () => number | undefined
  readonly log: Log
}

/**
 * Checks that sandboxes can run in containers, and opens the proxy for their requests. Control creates them; leftovers are removed
 * here.
 */
export async function openContainers(
  containers: Containers,
  { folder, socketFolder, workerdPid, log }: OpenContainersOptions,
): Promise<Omit<Sandboxes, 'disk'>> {
  const docker = new Docker(containers.socket)
  const problems = await findContainerProblems(containers, docker)
  if (problems.length > 0)
    throw new SandwireError(
      'provider_unavailable',
      `Cannot run sandboxes in containers: ${problems.join('; ')}`,
    )
  const own = new OwnContainers(docker, path.join(folder.objects, SANDBOX_OBJECTS))
  const filter = EgressFilter.open({
    dataFolder: folder.root,
    gateway: (await docker.gateway()) ?? '',
    workerdPid,
    listContainers: () => own.list(),
    onFailure: (error) => log.warn('egress_filter', { cause: describeCause(error) }),
  })
  const egressSocket = egressSocketIn(socketFolder)
  // Control logs what the proxy blocks, with the sandbox.
  const proxy = await openEgressProxy({ socketPath: egressSocket, log: { warn: () => undefined } })
  return {
    isolation: 'container',
    engine: docker,
    egressSocket,
    slots: [],
    weaknesses: filter === undefined ? [...WEAKNESSES, OPEN_LISTENERS] : WEAKNESSES,
    // The image has its own programs.
    missingPrograms: [],
    adopt: () => own.adopt(),
    stopWithControl: () => own.stop(),
    close: async ({ stop }) => {
      if (stop) await own.end()
      await proxy.close()
      filter?.[Symbol.dispose]()
    },
  }
}

/** The network settings of a sandbox are on a published port and require no credential. */
const PUBLISHES_OUTSIDE =
  'The Docker engine publishes ports of containers on addresses that other machines can reach, and with them the network settings of ' +
  'sandboxes: set "ip": "127.0.0.1" in /etc/docker/daemon.json, or start dockerd with --ip 127.0.0.1'

type Engine = Pick<Docker, 'isAnswering' | 'hasImage' | 'gateway' | 'publishAddress'>

/** Where containers are weaker than bubblewrap; docs/operations.md describes the remedies. */
export const WEAKNESSES: readonly string[] = [
  'workerd sets no memory, process and disk limits for containers: set defaults in the engine',
  'users of this machine can connect to the ports that workerd publishes on loopback',
]

/** Without root or iptables. */
const OPEN_LISTENERS =
  "users and other containers of this machine can use sandboxes' networks through workerd's listeners: run as root, with iptables"

/** Everything that prevents sandboxes in containers on this machine, one line each with what to do. */
export async function findContainerProblems(
  { socket, image, egressImage }: Containers,
  engine: Engine,
): Promise<readonly string[]> {
  if (!(await engine.isAnswering()))
    return [
      `No Docker engine answers at "${socket}": start it, give this user access to its socket, or set DOCKER_HOST`,
    ]
  const [hasImage, hasEgressImage, gateway, publishAddress] = await Promise.all([
    engine.hasImage(image),
    engine.hasImage(egressImage),
    engine.gateway(),
    engine.publishAddress(),
  ])
  return [
    ...(hasImage ? [] : [`Image "${image}" not found: build it with npm run image`]),
    ...(hasEgressImage ? [] : [`Image "${egressImage}" not found: docker pull ${egressImage}`]),
    ...(gateway === undefined
      ? ['The default network of the Docker engine has no gateway: start dockerd with --bip 172.17.0.1/16']
      : []),
    ...(publishAddress?.startsWith('127.') === true ? [] : [PUBLISHES_OUTSIDE]),
  ]
}
