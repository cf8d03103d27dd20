import type { BrowserContext, Page } from 'playwright-core'

/** Runs in every page before its scripts: records policy violations. */
function recordViolations(): void {
  const violations: string[] = []
  Object.assign(globalThis, { violations })
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
    violations.push(`${violatedDirective} ${blockedURI} ${sample}`),
  )
}

/** A server of another origin that records its requests. */
export class ForeignServer implements AsyncDisposable {
  readonly asked: string[] = []
  /** Cookies received. */
  readonly cookies: string[] = []
  readonly #server: ReturnType<typeof Bun.serve>

  constructor(html = '<!doctype html><title>foreign</title>') {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        this.cookies.push(...(request.headers.get('cookie')?.split('; ') ?? []))
        this.asked.push(
          `${request.headers.get('upgrade') ?? request.method} ${new URL(request.url).pathname}`,
        )
        return new Response(html, { headers: { 'content-type': 'text/html' } })
      },
    })
  }

  get port(): number {
    return this.#server.port ?? 0
  }

  /** Same site as the workbench, another origin. */
  get origin(): string {
    return `http://localhost:${this.port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true)
  }
}

/** Records what a page does. */
export class PageRecorder {
  readonly #page: Page
  /** URLs of requests and WebSockets. */
  readonly asked: string[] = []
  /** Opened pages. */
  readonly opened: Page[] = []
  readonly complaints: string[] = []

  private constructor(page: Page) {
    this.#page = page
    page.on('request', (request) => this.asked.push(request.url()))
    page.on('websocket', (socket) => this.asked.push(socket.url()))
    page.on('popup', (popup) => this.opened.push(popup))
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(message.text())
    })
    page.on('pageerror', (error) => this.complaints.push(String(error)))
  }

  /** Call before the first navigation. */
  static async watch(context: BrowserContext, page: Page): Promise<PageRecorder> {
    await context.addInitScript(recordViolations)
    return new PageRecorder(page)
  }

  /** Contacted hosts, without data and blob URLs. */
  get hosts(): readonly string[] {
    const addresses = this.asked.filter((address) => /^(?:https?|wss?):/.test(address))
    return [...new Set(addresses.map((address) => new URL(address).host))]
  }

  violations(): Promise<readonly string[]> {
    return this.#page.evaluate(() => Reflect.get(globalThis, 'violations') as string[])
  }
}
