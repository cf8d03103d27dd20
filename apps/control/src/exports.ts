declare global {
  namespace Cloudflare {
    /** What `ctx.exports` leads to: the entrypoints and objects of this worker. */
    interface GlobalProps {
      mainModule: typeof import('./index.ts')
    }
  }
}

export {}
