// What the generated modules and the scripts beside this file are held to: ESLint's own recommendation.

import js from '@eslint/js';

const names = ['URL', 'process', 'atob', 'btoa', 'navigator', 'console'];

export default [
  js.configs.recommended,
  { languageOptions: { ecmaVersion: 2022, sourceType: 'module', globals: Object.fromEntries(names.map(name => [name, 'readonly'])) } },
];
