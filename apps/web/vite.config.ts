import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

// Vite takes the environment's word for what is built, and the host builds in whatever it was started in.
process.env['NODE_ENV'] = 'production'

/** The module by which Vite has every `import()` of the page loaded, and what is loaded with it. */
const PRELOAD_HELPER = '\0vite/preload-helper.js'

/** Has files fetched before they are imported, since only that can be repeated. */
function fetchFirst(): Plugin {
  const source = JSON.stringify(`${import.meta.dirname}/src/parts/import-fetched.ts`)
  return {
    name: 'sandwire:fetch-first',
    enforce: 'pre',
    load: (id) =>
      id === PRELOAD_HELPER ? `export { importFetched as __vitePreload } from ${source}` : undefined,
  }
}

// oxlint-disable-next-line import/no-default-export -- Vite looks for one.
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), fetchFirst()],
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    // One style sheet, so that parts that are loaded later are scripts alone.
    cssCodeSplit: false,
    // The page may not run inline scripts, and every browser it is for knows modulepreload.
    modulePreload: {
      polyfill: false,
      // The file itself too, which Vite leaves out where it needs no other.
      resolveDependencies: (file, others, { hostType }) =>
        hostType === 'js' ? [...new Set([file, ...others])] : others,
    },
  },
})
