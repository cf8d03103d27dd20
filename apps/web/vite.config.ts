import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

// Vite reads NODE_ENV, and the host builds in any environment.
process.env['NODE_ENV'] = 'production'

/** Vite's helper for every `import()` and its preloads. */
const PRELOAD_HELPER = '\0vite/preload-helper.js'

/** Fetches files before importing them, since only a fetch can be retried. */
function fetchFirst(): Plugin {
  const source = JSON.stringify(`${import.meta.dirname}/src/parts/import-fetched.ts`)
  return {
    name: 'sandwire:fetch-first',
    enforce: 'pre',
    load: (id) =>
      id === PRELOAD_HELPER ? `export { importFetched as __vitePreload } from ${source}` : undefined,
  }
}

// oxlint-disable-next-line import/no-default-export -- Vite requires one.
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), fetchFirst()],
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    // One style sheet, so that lazy parts consist of scripts alone.
    cssCodeSplit: false,
    // The polyfill is an inline script, which the policy blocks; supported browsers do not need it.
    modulePreload: {
      polyfill: false,
      // Includes the file itself, which Vite omits when it has no dependencies.
      resolveDependencies: (file, others, { hostType }) =>
        hostType === 'js' ? [...new Set([file, ...others])] : others,
    },
  },
})
