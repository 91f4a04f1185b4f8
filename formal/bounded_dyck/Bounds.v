(** Theorem 2: what a pair of brackets may leave, from how far apart outputs stay after n of them. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
Require Import List Arith.
From Formal.common Require Import Sums.
From Formal.bounded_dyck Require Import Pairs Words.
Import ListNotations.
Open Scope R_scope.

Definition distance (W : nat) (v w : nat -> R) : R := norm W (fun i => v i - w i).

Lemma norm_nonneg W v : 0 <= norm W v.
Proof. apply sqrt_pos. Qed.

Lemma cauchy W v w : - (norm W v * norm W w) <= dot W v w <= norm W v * norm W w.
Proof.
  pose proof (cauchy_schwarz W v w) as C. rewrite <- (norm_sqr W v), <- (norm_sqr W w) in C.
  pose proof (norm_nonneg W v). pose proof (norm_nonneg W w).
  set (a := norm W v) in *. set (b := norm W w) in *. set (d := dot W v w) in *.
  assert (0 <= a * b) by (apply Rmult_le_pos; assumption).
  replace (a * a * (b * b)) with ((a * b) ^ 2) in C by ring. split; nra.
Qed.

Lemma norm_le W v b : 0 <= b -> dot W v v <= b ^ 2 -> norm W v <= b.
Proof. intros Pb H. unfold norm. rewrite <- (sqrt_pow2 b) by exact Pb. now apply sqrt_le_1_alt. Qed.

Lemma triangle W v w : norm W (fun i => v i + w i) <= norm W v + norm W w.
Proof.
  pose proof (norm_nonneg W v). pose proof (norm_nonneg W w). apply norm_le; [lra|].
  replace (dot W (fun i => v i + w i) (fun i => v i + w i)) with (dot W v v + 2 * dot W v w + dot W w w).
  - rewrite <- !norm_sqr. pose proof (cauchy W v w). nra.
  - unfold dot. rewrite <- Sum_scal, <- !Sum_plus. apply Sum_ext. intros. ring.
Qed.

(** Unit vectors are at most twice as far apart as the vectors are, over the sum of their lengths. *)
Lemma unit_distance W a b : 0 < norm W a -> 0 < norm W b ->
  distance W (LN W a) (LN W b) <= 2 * distance W a b / (norm W a + norm W b).
Proof.
  intros Pa Pb. pose proof (cauchy W a b) as C. pose proof (norm_nonneg W (fun i => a i - b i)) as Pd.
  assert (Sq : distance W a b ^ 2 = norm W a ^ 2 + norm W b ^ 2 - 2 * dot W a b).
  { unfold distance. simpl. rewrite !Rmult_1_r, !norm_sqr. unfold dot. rewrite <- Sum_scal, <- Sum_plus, <- Sum_minus.
    apply Sum_ext. intros. ring. }
  assert (Su : dot W (fun i => LN W a i - LN W b i) (fun i => LN W a i - LN W b i) = 2 - 2 * dot W a b / (norm W a * norm W b)).
  { unfold LN.
    transitivity (dot W a a / (norm W a * norm W a) + dot W b b / (norm W b * norm W b) - 2 * dot W a b / (norm W a * norm W b)).
    - unfold dot, Rdiv. rewrite <- !Sum_scal_r. rewrite (Rmult_comm 2), (Rmult_assoc (Sum W _) 2), <- Sum_scal_r.
      rewrite <- Sum_plus, <- Sum_minus. apply Sum_ext. intros. field. lra.
    - rewrite <- !norm_sqr. field. lra. }
  apply norm_le.
  - apply Rmult_le_pos; [unfold distance; lra|]. apply Rlt_le, Rinv_0_lt_compat. lra.
  - rewrite Su. set (A := norm W a) in *. set (B := norm W b) in *. set (p := dot W a b) in *.
    replace ((2 * distance W a b / (A + B)) ^ 2) with (4 * (distance W a b ^ 2) / (A + B) ^ 2) by (field; lra).
    rewrite Sq. apply (Rmult_le_reg_r (A * B * (A + B) ^ 2)).
    + apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; lra|apply pow_lt; lra].
    + replace ((2 - 2 * p / (A * B)) * (A * B * (A + B) ^ 2)) with (2 * (A * B - p) * (A + B) ^ 2) by (field; lra).
      replace (4 * (A ^ 2 + B ^ 2 - 2 * p) / (A + B) ^ 2 * (A * B * (A + B) ^ 2))
        with (4 * (A ^ 2 + B ^ 2 - 2 * p) * (A * B)) by (field; lra).
      assert (0 <= 2 * (A * B + p) * (A - B) ^ 2); [|lra].
      apply Rmult_le_pos; [lra|apply pow2_ge_0].
Qed.

(** Sums of norm at most P1 that differ by at most 2 P: the outputs of a gamma-Lipschitz head are tau apart after n pairs. *)
Lemma apart_bound W O (head : (nat -> R) -> nat -> R) x y delta P P1 gamma tau n :
  0 < tau -> 0 <= gamma -> 0 < n -> norm W x <= P1 -> norm W y <= P1 -> 0 <= P -> distance W x y <= 2 * P ->
  (forall v w, distance O (head v) (head w) <= gamma * distance W v w) ->
  tau <= distance O (head (LN W (fun i => x i + n * delta i))) (head (LN W (fun i => y i + n * delta i))) ->
  n * norm W delta <= P1 + 2 * gamma * P / tau.
Proof.
  intros Pt Pg Pn Hx Hy PP Hd Lip Apart.
  pose proof (norm_nonneg W x) as Nx.
  set (S := norm W delta) in *.
  assert (0 <= 2 * gamma * P / tau).
  { apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rlt_le, Rinv_0_lt_compat, Pt. }
  destruct (Rle_lt_dec (n * S) P1) as [L|L]; [lra|].
  set (a := fun i => x i + n * delta i) in *. set (b := fun i => y i + n * delta i) in *.
  assert (Far : forall v, norm W v <= P1 -> n * S - P1 <= norm W (fun i => v i + n * delta i)).
  { intros v Hv. pose proof (triangle W (fun i => v i + n * delta i) (fun i => - 1 * v i)) as T.
    assert (E1 : norm W (fun i => v i + n * delta i + - 1 * v i) = n * S).
    { unfold S. rewrite <- norm_scaled by exact Pn. unfold norm, dot. f_equal. apply Sum_ext. intros. ring. }
    assert (E2 : norm W (fun i => - 1 * v i) = norm W v).
    { unfold norm, dot. f_equal. apply Sum_ext. intros. ring. }
    cbv beta in T. rewrite E1, E2 in T. lra. }
  pose proof (Far x Hx) as Fa. pose proof (Far y Hy) as Fb. fold a in Fa. fold b in Fb.
  assert (D : distance W a b <= 2 * P).
  { replace (distance W a b) with (distance W x y); [exact Hd|].
    unfold distance, norm, dot, a, b. f_equal. apply Sum_ext. intros. ring. }
  pose proof (unit_distance W a b ltac:(lra) ltac:(lra)) as U.
  pose proof (Lip (LN W a) (LN W b)) as Q.
  set (m := n * S - P1) in *. assert (Pm : 0 < m) by (unfold m; lra).
  pose proof (norm_nonneg W (fun i => a i - b i)) as Pd. fold (distance W a b) in Pd.
  assert (Hu : distance W (LN W a) (LN W b) <= 2 * P / m).
  { apply Rle_trans with (1 := U). apply (Rmult_le_reg_r (m * (norm W a + norm W b))).
    - apply Rmult_lt_0_compat; lra.
    - replace (2 * distance W a b / (norm W a + norm W b) * (m * (norm W a + norm W b))) with (2 * distance W a b * m)
        by (field; lra).
      replace (2 * P / m * (m * (norm W a + norm W b))) with (2 * P * (norm W a + norm W b)) by (field; lra). nra. }
  assert (T : tau <= gamma * (2 * P / m)).
  { apply Rle_trans with (1 := Apart). apply Rle_trans with (1 := Q). now apply Rmult_le_compat_l. }
  assert (m <= 2 * gamma * P / tau); [|unfold m in *; lra].
  apply (Rmult_le_reg_r (tau / m)); [apply Rdiv_lt_0_compat; assumption|].
  replace (m * (tau / m)) with tau by (field; lra).
  replace (2 * gamma * P / tau * (tau / m)) with (gamma * (2 * P / m)) by (field; lra). exact T.
Qed.

(** Where the levels between d + 2 and l are opened once. *)
Definition level_bound (P gamma tau n : R) (c : nat) : R := P * (1 + 2 * gamma / tau) / n * (1 + 1 / n) ^ c.

(** The bounds of the levels between add up to the next one. *)
Lemma levels_add_up P gamma tau n c : 0 < tau -> 0 < n ->
  P + Sum c (level_bound P gamma tau n) + 2 * gamma * P / tau = n * level_bound P gamma tau n c.
Proof.
  intros Pt Pn. induction c.
  - unfold level_bound. simpl. field. lra.
  - cbn [Sum]. replace (n * level_bound P gamma tau n (S c)) with (n * level_bound P gamma tau n c + level_bound P gamma tau n c).
    + rewrite <- IHc. ring.
    + unfold level_bound. simpl. field. lra.
Qed.

Lemma norm_Sum W c (f : nat -> nat -> R) b : (forall m, (m < c)%nat -> norm W (f m) <= b m) ->
  norm W (fun e => Sum c (fun m => f m e)) <= Sum c b.
Proof.
  induction c; intro H; cbn [Sum].
  - right. unfold norm, dot. rewrite Sum_zero; [apply sqrt_0|]. intros. simpl. ring.
  - apply Rle_trans with (1 := triangle W (fun e => Sum c (fun m => f m e)) (f c)).
    pose proof (H c ltac:(lia)). assert (norm W (fun e => Sum c (fun m => f m e)) <= Sum c b) by (apply IHc; auto). lra.
Qed.

(** The outputs of a head at the query q are tau apart or more after two prefixes. *)
Definition apart (W O : nat) V Z (head : (nat -> R) -> nat -> R) (tau : R) (q : state) (v v' : list bracket) : Prop :=
  tau <= distance O (head (LN W (before_LN V Z q v))) (head (LN W (before_LN V Z q v'))).

(** Two prefixes of the language that end in the query (j, d), with t and t' as the last unmatched types, of length N or
    less, START counted. *)
Definition both_ask (k D j d t t' N : nat) (v v' : list bracket) : Prop :=
  asks k D j d t v /\ asks k D j d t' v' /\ (1 + length v <= N)%nat /\ (1 + length v' <= N)%nat.

(** n pairs of type i and level l in the two prefixes (16): both are such, within length 2 n + 2 D. *)
Lemma lengthened_both_ask k D w w' t t' j n i l :
  (j < k)%nat -> (i < k)%nat -> Forall (fun s => (s < k)%nat) (w ++ [t]) -> Forall (fun s => (s < k)%nat) (w' ++ [t']) ->
  length w' = length w -> (S (length w) < D)%nat -> (1 <= l <= D)%nat ->
  both_ask k D j (S (length w)) t t' (2 * n + 2 * D) (lengthened (w ++ [t]) j n i l) (lengthened (w' ++ [t']) j n i l).
Proof.
  intros Lj Li F F' Same Ld Ll. unfold both_ask. rewrite !lengthened_length, !app_length by lia. simpl length. unfold between.
  repeat split.
  - apply lengthened_asks; assumption.
  - rewrite <- Same. apply lengthened_asks; try assumption. rewrite Same. exact Ld.
  - lia.
  - lia.
Qed.

Section Levels.
Variables (D W O : nat) (V : state -> nat -> R) (Z : state -> state -> R) (head : (nat -> R) -> nat -> R).
Variables (gamma tau P : R) (n : nat) (w w' : list nat) (t t' j : nat).
Let d := S (length w).
Let q := At (Close j) d.
Let delta i l e := Words.pair (fun s => u V Z q s e) i l.
Let far i l := apart W O V Z head tau q (lengthened (w ++ [t]) j n i l) (lengthened (w' ++ [t']) j n i l).
Hypotheses (Same : length w' = length w) (Pt : 0 < tau) (Pg : 0 <= gamma) (Pn : (0 < n)%nat).
Hypothesis Lip : forall v v', distance O (head v) (head v') <= gamma * distance W v v'.
Hypothesis Hx : norm W (before_LN V Z q (prefix16 (w ++ [t]) j)) <= P.
Hypothesis Hy : norm W (before_LN V Z q (prefix16 (w' ++ [t']) j)) <= P.

Lemma levels c : forall i l, (1 <= l <= D)%nat -> between d l = c -> far i l ->
  (forall m, (d + 2 <= m < l)%nat -> far 0%nat m) ->
  norm W (delta i l) <= level_bound P gamma tau (INR n) c.
Proof.
  induction c as [c IH] using lt_wf_ind. intros i l Ll Ec Apart Below.
  pose proof (lt_INR 0 n Pn) as Qn. simpl in Qn.
  set (b := level_bound P gamma tau (INR n)) in *.
  set (extra := fun e => Sum c (fun m => delta 0%nat (d + 2 + m)%nat e)).
  assert (HE : norm W extra <= Sum c b).
  { apply (norm_Sum W c (fun m => delta 0%nat (d + 2 + m)%nat)). intros m Lm. unfold between in Ec.
    apply (IH m Lm); [lia|unfold between; lia|apply Below; lia|]. intros m' Lm'. apply Below. lia. }
  set (x := before_LN V Z q (prefix16 (w ++ [t]) j)) in *. set (y := before_LN V Z q (prefix16 (w' ++ [t']) j)) in *.
  assert (Lw : length (w ++ [t]) = d /\ length (w' ++ [t']) = d) by (unfold d; rewrite !app_length; simpl; lia).
  assert (Sums : forall v s, length (v ++ [s]) = d ->
    before_LN V Z q (lengthened (v ++ [s]) j n i l)
    = fun e => before_LN V Z q (prefix16 (v ++ [s]) j) e + extra e + INR n * delta i l e).
  { intros v s Lv. apply FunctionalExtensionality.functional_extensionality. intro e. unfold before_LN.
    rewrite lengthened_gather, Lv, Ec by lia. unfold extra, delta. ring. }
  assert (More : forall v, norm W v <= P -> norm W (fun e => v e + extra e) <= P + Sum c b).
  { intros v Hv. apply Rle_trans with (1 := triangle W v extra). lra. }
  assert (Dxy : distance W (fun e => x e + extra e) (fun e => y e + extra e) <= 2 * P).
  { pose proof (triangle W x (fun i => - 1 * y i)) as T.
    assert (E1 : norm W (fun i => x i + - 1 * y i) = distance W (fun e => x e + extra e) (fun e => y e + extra e)).
    { unfold distance, norm, dot. f_equal. apply Sum_ext. intros. ring. }
    assert (E2 : norm W (fun i => - 1 * y i) = norm W y).
    { unfold norm, dot. f_equal. apply Sum_ext. intros. ring. }
    cbv beta in T. rewrite E1, E2 in T. lra. }
  pose proof (norm_nonneg W x) as NP.
  assert (A : INR n * norm W (delta i l) <= P + Sum c b + 2 * gamma * P / tau).
  { apply (apart_bound W O head (fun e => x e + extra e) (fun e => y e + extra e) (delta i l) P (P + Sum c b) gamma tau (INR n));
      try assumption; [now apply More|now apply More|lra|].
    unfold x, y. cbv beta. rewrite <- (Sums w t (proj1 Lw)), <- (Sums w' t' (proj2 Lw)). exact Apart. }
  unfold b in A. rewrite levels_add_up in A by assumption.
  apply (Rmult_le_reg_l (INR n)); assumption.
Qed.
End Levels.

(** @statement Bounded Dyck: Theorem 2
    @clause levels that the prefix reaches
    @kind clause
    @hypotheses the query is a closed bracket of type j and depth d from 1 to D - 1; w and w' are d types each, whose last
      ones are t and t'; P bounds the norms of the sums (16) of both; a gamma-Lipschitz head; n >= 1; outputs after the
      two prefixes (16) with n pairs of type i and level l before the last bracket are tau > 0 apart or more
    @formula S = |u(q, open(i, l)) + u(q, close(i, l - 1))| <= P (1 + 2 gamma/tau)/n for this type i and level l from 1 to
      min(D, d + 2)
    @note These two are prefixes of the language that end in the query, with t and t' as the last unmatched types, of length
      2 n + 2 D or less, START counted: a part of the theorem. So it is enough that all such prefixes are tau apart. The
      head is that of one query: the link of (6) may be a part of it. *)
Theorem theorem2 :
  forall k D W O V Z head gamma tau P n w w' t t' j i l,
  let d := S (length w) in let q := At (Close j) d in
  let v := lengthened (w ++ [t]) j n i l in let v' := lengthened (w' ++ [t']) j n i l in
  (j < k)%nat -> Forall (fun s => (s < k)%nat) (w ++ [t]) -> Forall (fun s => (s < k)%nat) (w' ++ [t']) ->
  length w' = length w -> (d < D)%nat -> 0 < tau -> 0 <= gamma -> (0 < n)%nat ->
  (forall v v', distance O (head v) (head v') <= gamma * distance W v v') ->
  norm W (before_LN V Z q (prefix16 (w ++ [t]) j)) <= P -> norm W (before_LN V Z q (prefix16 (w' ++ [t']) j)) <= P ->
  (i < k)%nat -> (1 <= l <= D)%nat -> (l <= d + 2)%nat ->
  both_ask k D j d t t' (2 * n + 2 * D) v v' /\
  (apart W O V Z head tau q v v' ->
   norm W (fun e => u V Z q (At (Open i) l) e + u V Z q (At (Close i) (pred l)) e) <= P * (1 + 2 * gamma / tau) / INR n).
Proof.
  intros k D W O V Z head gamma tau P n w w' t t' j i l d q v v' Lj F F' Same Ld Pt Pg Pn Lip Hx Hy Li Ll Reach.
  split; [now apply lengthened_both_ask|]. intro Apart.
  pose proof (levels D W O V Z head gamma tau P n w w' t t' j Same Pt Pg Pn Lip Hx Hy 0 i l Ll
    ltac:(unfold between; fold d; lia) Apart ltac:(fold d; lia)) as B.
  unfold level_bound in B. rewrite pow_O, Rmult_1_r in B. exact B.
Qed.

(** @statement Bounded Dyck: Theorem 2
    @clause deeper levels, those between opened once
    @kind clause
    @hypotheses as for the levels that the prefix reaches; outputs are tau apart or more after the two prefixes with n pairs
      of type i and level l, and after those with n pairs of the first type at each level from d + 2 to l - 1, too
    @formula S = |u(q, open(i, l)) + u(q, close(i, l - 1))| <= P (1 + 2 gamma/tau) (1 + 1/n)^{l - d - 2}/n for this type i
      and level l from d + 2 to D
    @note The induction over the levels between is a part of the theorem, and so is that all these are prefixes of the
      language of length 2 n + 2 D or less. *)
Theorem theorem2_deeper :
  forall k D W O V Z head gamma tau P n w w' t t' j i l,
  let d := S (length w) in let q := At (Close j) d in
  let v := lengthened (w ++ [t]) j n in let v' := lengthened (w' ++ [t']) j n in
  (j < k)%nat -> Forall (fun s => (s < k)%nat) (w ++ [t]) -> Forall (fun s => (s < k)%nat) (w' ++ [t']) ->
  length w' = length w -> (d < D)%nat -> 0 < tau -> 0 <= gamma -> (0 < n)%nat ->
  (forall v v', distance O (head v) (head v') <= gamma * distance W v v') ->
  norm W (before_LN V Z q (prefix16 (w ++ [t]) j)) <= P -> norm W (before_LN V Z q (prefix16 (w' ++ [t']) j)) <= P ->
  (i < k)%nat -> (d + 2 <= l <= D)%nat ->
  both_ask k D j d t t' (2 * n + 2 * D) (v i l) (v' i l) /\
  (forall m, (d + 2 <= m < l)%nat -> both_ask k D j d t t' (2 * n + 2 * D) (v 0%nat m) (v' 0%nat m)) /\
  (apart W O V Z head tau q (v i l) (v' i l) ->
   (forall m, (d + 2 <= m < l)%nat -> apart W O V Z head tau q (v 0%nat m) (v' 0%nat m)) ->
   norm W (fun e => u V Z q (At (Open i) l) e + u V Z q (At (Close i) (pred l)) e)
   <= P * (1 + 2 * gamma / tau) / INR n * (1 + 1 / INR n) ^ (l - d - 2)).
Proof.
  intros k D W O V Z head gamma tau P n w w' t t' j i l d q v v' Lj F F' Same Ld Pt Pg Pn Lip Hx Hy Li Ll.
  assert (Ask : forall i m, (i < k)%nat -> (d + 2 <= m <= D)%nat -> both_ask k D j d t t' (2 * n + 2 * D) (v i m) (v' i m)).
  { intros i' m Li' Lm. apply lengthened_both_ask; try assumption. lia. }
  split; [now apply Ask|]. split; [intros m Lm; apply Ask; lia|]. intros Apart Below.
  exact (levels D W O V Z head gamma tau P n w w' t t' j Same Pt Pg Pn Lip Hx Hy (l - d - 2) i l ltac:(lia)
    ltac:(unfold between; fold d; lia) Apart Below).
Qed.
