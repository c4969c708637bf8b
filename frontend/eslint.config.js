import vue from "eslint-plugin-vue";
import typescript from "typescript-eslint";

export default typescript.config(
  { ignores: ["node_modules/", "dist/", "src/client/messages.ts"] },
  ...typescript.configs.recommended,
  ...vue.configs["flat/recommended"],
  {
    files: ["**/*.vue"],
    languageOptions: { parserOptions: { parser: typescript.parser } },
  },
  {
    files: ["**/*.ts", "**/*.vue"],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname, extraFileExtensions: [".vue"] },
    },
    rules: {
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "no-eval": "error",
      eqeqeq: "error",
    },
  },
  {
    files: ["**/*.vue"],
    rules: {
      // Names come from strangers: they are text, never HTML.
      "vue/no-v-html": "error",
      "vue/block-lang": ["error", { script: { lang: "ts" } }],
      "vue/multi-word-component-names": "off",
      // prettier decides the layout
      "vue/max-attributes-per-line": "off",
      "vue/singleline-html-element-content-newline": "off",
      "vue/multiline-html-element-content-newline": "off",
      "vue/html-self-closing": "off",
      "vue/html-indent": "off",
      "vue/html-closing-bracket-newline": "off",
      "vue/first-attribute-linebreak": "off",
      "vue/require-default-prop": "off",
    },
  },
);
