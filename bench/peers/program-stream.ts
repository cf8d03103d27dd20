import type { Stream } from './stream.ts'

/** A client program whose stdin and stdout are the process at the other end. */
export function openProgramStream(argv: readonly string[], env = process.env): Stream {
  const child = Bun.spawn([...argv], { stdin: 'pipe', stdout: 'pipe', stderr: 'ignore', env })
  const ended = Promise.withResolvers<number | undefined>()
  const stream: Stream = {
    onData: () => {},
    write: (bytes) => {
      void child.stdin.write(bytes)
      void child.stdin.flush()
    },
    ended: ended.promise,
    close: () => child.kill('SIGTERM'),
  }
  const read = async () => {
    for await (const chunk of child.stdout) stream.onData(chunk)
    ended.resolve(await child.exited)
  }
  read().catch(() => ended.resolve(undefined))
  return stream
}
