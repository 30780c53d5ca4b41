/** Builds the dashboard into dist/dashboard, from where the HTTP listener serves it. */
import { defineConfig } from 'vite';

export default defineConfig({
  // The page itself is `/`; its other files are below this path.
  base: '/dashboard/',
  build: {
    outDir: '../../dist/dashboard',
    emptyOutDir: true,
    assetsDir: '',
    // The content security policy refuses inlined files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Licences of the bundled packages.
    license: { fileName: 'licences.md' },
    target: 'es2022',
  },
});
