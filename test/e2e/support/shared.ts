/** Shared resources by name, in the order of opening. */
const opened = new Map<string, Promise<AsyncDisposable>>()

/** Returns a resource shared by all test files of this process: opened on first use, closed after the last file. */
export function share<T extends AsyncDisposable>(name: string, open: () => Promise<T>): Promise<T> {
  const known = opened.get(name) ?? open()
  opened.set(name, known)
  return known as Promise<T>
}

export async function closeShared(): Promise<void> {
  for (const [name, resource] of [...opened].toReversed()) {
    opened.delete(name)
    await resource.then(
      (value) => value[Symbol.asyncDispose](),
      () => undefined,
    )
  }
}
