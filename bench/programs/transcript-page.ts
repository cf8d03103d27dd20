// Runs in the workbench page: measures the transcript of a conversation.

/** Functions that the benchmark calls in the page. */
export interface TranscriptPage {
  has(selector: string): boolean
  /** Clicks the first element of a selector once it is there. */
  click(selector: string): Promise<void>
  /** Resolves with the time at which the frame was painted in which the transcript has a text. Begins to listen at once. */
  awaitText(text: string): Promise<number>
  /** From now on, tasks are watched. */
  watchTasks(): void
  /** The longest task since then, in milliseconds; 0 when none was longer than 50. */
  longestTask(): number
}

let longest = 0

function lastText(): string {
  return document.querySelector('.transcript')?.textContent.slice(-2_000) ?? ''
}

/** Resolves after the frame in which the condition becomes true has been painted. */
function afterPaint(isTrue: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      const isNow = isTrue()
      requestAnimationFrame(() => {
        if (!isNow) return look()
        const { port1, port2 } = new MessageChannel()
        port1.addEventListener('message', () => resolve())
        port1.start()
        port2.postMessage(undefined)
      })
    }
    look()
  })
}

const page: TranscriptPage = {
  has: (selector) => document.querySelector(selector) !== null,

  async click(selector) {
    const found = (): HTMLElement | null => document.querySelector(selector)
    await afterPaint(() => found() !== null)
    found()?.click()
  },

  async awaitText(text) {
    await afterPaint(() => lastText().includes(text))
    return performance.timeOrigin + performance.now()
  },

  watchTasks() {
    longest = 0
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longest = Math.max(longest, duration)
    })
    observer.observe({ type: 'longtask' })
  },

  longestTask: () => longest,
}

Object.assign(globalThis, { bench: page })
