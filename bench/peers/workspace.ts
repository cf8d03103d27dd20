import type { RunningHost } from '../../test/e2e/support/control.ts'
import { type RunningSandboxd, startSandboxd } from '../../test/e2e/support/sandboxd.ts'
import { createSandbox, findIsolationProblem, findSandboxd, findWorkerd, openHost } from './control-plane.ts'

/** File routes over HTTP, with or without control. */
export interface FilesPlace extends AsyncDisposable {
  /** Fetches a route of the workspace by its tail, such as `file?path=a`, or `compat/tree`. */
  readonly fetch: (tail: string, init?: RequestInit) => Promise<Response>
}

/** File routes of a sandbox behind control. */
export interface ControlledPlace extends FilesPlace {
  readonly host: RunningHost
  readonly sandbox: string
  readonly workerd: number
  readonly sandboxd: number
}

const SANDBOX = 'bench'

export { findIsolationProblem }

/** sandboxd by itself, on a folder of this machine or an empty one. */
export async function openSandboxdFiles(workspace?: string): Promise<FilesPlace> {
  const sandboxd: RunningSandboxd = await startSandboxd(workspace === undefined ? {} : { workspace })
  return {
    fetch: (tail, init) => sandboxd.fetch(`/workspace/${tail}`, init),
    [Symbol.asyncDispose]: async () => void (await sandboxd.stop()),
  }
}

async function place(host: RunningHost, sandbox: string): Promise<ControlledPlace> {
  const id = await createSandbox(host, sandbox)
  return {
    host,
    sandbox,
    workerd: findWorkerd(host),
    sandboxd: findSandboxd(host, id),
    fetch: (tail, init) => {
      const [path = '', query = ''] = tail.split('?')
      const isCompat = path.startsWith('compat/')
      const route = isCompat ? path.replace('compat/', '/api/') : `/api/workspaces/${sandbox}/${path}`
      return host.fetch(`${route}?${query}${isCompat ? `&sandbox=${sandbox}` : ''}`, init)
    },
    [Symbol.asyncDispose]: host.stop,
  }
}

/** A sandbox with default limits, behind control. */
export function openControlledFiles(): Promise<ControlledPlace> {
  return openHost((host) => place(host, SANDBOX))
}

/** `WORKSPACE_MODE=local`: a folder of this machine, behind control. */
export function openLocalFiles(folder: string): Promise<ControlledPlace> {
  return openHost((host) => place(host, 'local'), { args: ['--workspace', folder] })
}

/** Reads the response to its end; throws for an error status. */
export async function expectGood(answer: Promise<Response>): Promise<Response> {
  const response = await answer
  if (!response.ok) throw new Error(`Got status ${response.status}: ${await response.text()}`)
  return response
}
