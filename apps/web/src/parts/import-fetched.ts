/** Why a part of the page is not there. */
export class PartError extends Error {
  /** `unreachable`: nobody answered; `gone`: the server that answered does not have it. */
  readonly why: 'unreachable' | 'gone'

  constructor(why: 'unreachable' | 'gone', cause?: unknown) {
    super(`A part of the page is ${why}`, { cause })
    this.name = 'PartError'
    this.why = why
  }
}

async function fetchFile(file: string): Promise<void> {
  let status: number
  try {
    const response = await fetch(`/${file}`)
    // What breaks off on its way has not come either.
    await response.arrayBuffer()
    status = response.status
  } catch (caught) {
    throw new PartError('unreachable', caught)
  }
  if (status >= 500) throw new PartError('unreachable')
  if (status >= 400) throw new PartError('gone')
}

/**
 * Imports a module once its files are in the browser's cache; the build calls it for every `import()` of the page. Chromium does not ask
 * again for a module that could not be loaded once, nor for one that it needs, until the page is loaded anew; a failed `fetch` can be
 * repeated.
 */
export async function importFetched<T>(load: () => Promise<T>, files: readonly string[] = []): Promise<T> {
  await Promise.all(files.map(fetchFile))
  try {
    return await load()
  } catch (caught) {
    throw new PartError('gone', caught)
  }
}
