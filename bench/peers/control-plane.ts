import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readDescendants, readProcessTable } from '@sandwire/testing'
import { type HostOptions, type RunningHost, startHost } from '../../test/e2e/support/control.ts'

/** A property of a response or file; throws if it is missing. */
function readField(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name))
    throw new Error(`Cannot read field "${name}": it is missing`)
  return Reflect.get(value, name)
}

/** Why sandboxes cannot be isolated here; without isolation, figures are not comparable. */
export function findIsolationProblem(): string | undefined {
  return Bun.which('bwrap') === null ? 'not installed (apt-get install bubblewrap)' : undefined
}

async function request(host: RunningHost, method: string, path: string, body?: object): Promise<Response> {
  const response = await host.fetch(path, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  if (!response.ok)
    throw new Error(`Cannot ${method} ${path}: status ${response.status}: ${await response.text()}`)
  return response
}

/** Creates a sandbox with default settings; returns its id when it is running. */
export async function createSandbox(host: RunningHost, name: string): Promise<string> {
  const response = await request(host, 'POST', '/api/sandboxes', { name })
  return String(readField(await response.json(), 'id'))
}

export async function destroySandbox(host: RunningHost, name: string): Promise<void> {
  await request(host, 'DELETE', `/api/sandboxes/${name}`)
}

async function destroyAll(host: RunningHost): Promise<void> {
  const sandboxes = readField(await (await request(host, 'GET', '/api/sandboxes')).json(), 'sandboxes')
  if (!Array.isArray(sandboxes)) throw new Error('Cannot list the sandboxes: the answer is no list')
  for (const sandbox of sandboxes) await destroySandbox(host, String(readField(sandbox, 'id')))
}

async function startBenchedHost(options: HostOptions): Promise<RunningHost> {
  // A session of its own: Ctrl-C reaches the bench only, which stops everything in order.
  const host = await startHost({ ...options, prefix: ['setsid'] })
  const stop = async (): Promise<void> => {
    try {
      await destroyAll(host)
    } finally {
      await host.stop()
    }
  }
  return { ...host, stop, [Symbol.asyncDispose]: stop }
}

/**
 * Starts the real `sandwire up` with workerd. The result of `setUp` has to stop it; if `setUp` fails, it is stopped here.
 * Stopping it destroys all sandboxes.
 */
export async function openHost<T>(
  setUp: (host: RunningHost) => Promise<T>,
  options: HostOptions = {},
): Promise<T> {
  const host = await startBenchedHost(options)
  try {
    return await setUp(host)
  } catch (error) {
    await host.stop()
    throw error
  }
}

/** The workerd that control runs in. */
export function findWorkerd(host: RunningHost): number {
  const found = readProcessTable().find(({ name, parentPid }) => name === 'workerd' && parentPid === host.pid)
  if (found === undefined) throw new Error('Cannot find the workerd of the host')
  return found.pid
}

/** The supervisor process of a sandbox. */
export function findSupervisor(host: RunningHost, sandboxId: string): number {
  const file = join(host.data, 'sandboxes', sandboxId, 'state.json')
  return Number(readField(JSON.parse(readFileSync(file, 'utf8')), 'pid'))
}

/** The sandboxd of a sandbox: the innermost process that has its arguments. */
export function findSandboxd(host: RunningHost, sandboxId: string): number {
  const isIt = (pid: number): boolean => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(`--sandbox\0${sandboxId}`)
    } catch {
      // The process ended meanwhile.
      return false
    }
  }
  const found = readDescendants(findSupervisor(host, sandboxId)).findLast(({ pid }) => isIt(pid))
  if (found === undefined) throw new Error('Cannot find the sandboxd of the sandbox')
  return found.pid
}
