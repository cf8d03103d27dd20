/** A part of the page that could not be loaded. */
export class PartError extends Error {
  /** `unreachable`: no response; `gone`: the server does not have the file. */
  readonly reason: 'unreachable' | 'gone'

  constructor(reason: 'unreachable' | 'gone', cause?: unknown) {
    super(`A part of the page is ${reason}`, { cause })
    this.name = 'PartError'
    this.reason = reason
  }
}

async function fetchFile(file: string): Promise<void> {
  let status: number
  try {
    const response = await fetch(`/${file}`)
    // An interrupted response counts as unreachable.
    await response.arrayBuffer()
    status = response.status
  } catch (caught) {
    throw new PartError('unreachable', caught)
  }
  if (status >= 500) throw new PartError('unreachable')
  if (status >= 400) throw new PartError('gone')
}

/**
 * Imports a module after fetching its files into the browser cache; the build uses it for every `import()`. Chromium
 * never retries a module import that failed once, but a failed `fetch` can be repeated.
 */
export async function importFetched<T>(load: () => Promise<T>, files: readonly string[] = []): Promise<T> {
  await Promise.all(files.map(fetchFile))
  try {
    return await load()
  } catch (caught) {
    throw new PartError('gone', caught)
  }
}
