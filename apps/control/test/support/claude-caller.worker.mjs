// Calls methods of `ClaudeSandbox` as any other Worker would.

/** Opens the terminal of a run, types a line, and returns the text that came until then. */
async function useTerminal(env, run) {
  const stub = env.CLAUDE_SANDBOX.get(env.CLAUDE_SANDBOX.idFromName(run))
  const response = await stub.fetch(`http://any/terminal/${run}`, { headers: { upgrade: 'websocket' } })
  const { webSocket } = response
  if (webSocket === null) return `no socket: ${response.status} ${await response.text()}`
  webSocket.accept()
  let text = ''
  return new Promise((resolve) => {
    webSocket.addEventListener('message', ({ data }) => {
      text += data
      if (text.includes('Hello') && !text.includes('typed')) webSocket.send('typed\r')
      if (text.includes('typed')) setTimeout(() => resolve(text), 1_000)
    })
  })
}

// oxlint-disable-next-line import/no-default-export -- workerd requires one
export default {
  async fetch(request, env) {
    const [, name, method] = new URL(request.url).pathname.split('/')
    try {
      if (name === 'terminal') return new Response(await useTerminal(env, method))
      const stub = env.CLAUDE_SANDBOX.get(env.CLAUDE_SANDBOX.idFromName(name))
      return Response.json({ value: (await stub[method](...(await request.json()))) ?? null })
    } catch (error) {
      return Response.json({ error: String(error) })
    }
  },
}
